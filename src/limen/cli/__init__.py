"""The `limen` command: one file a subcommand; this one puts them together and words the errors.

What a user can cause (a bad file, a bad query, a missing package) ends as one sentence on stderr and
exit code 1; wrong usage keeps typer's 2, Ctrl-C is 130. Subcommands import what is heavy when they
run, so that `limen --help` is quick.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from limen.cli import archive, bench, demo, demo_geofence, doctor, match, plot, queries, reproduce


class Sentences(TyperGroup):
    """Runs a subcommand; an error of the user's becomes a sentence."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except BrokenPipeError:
            raise
        except (ValueError, OSError, ImportError) as error:
            print(f"limen: {sentence(error)}", file=sys.stderr)
            raise typer.Exit(1) from None


def sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


app = typer.Typer(
    cls=Sentences,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(match.match)
app.command()(bench.bench)
app.command()(reproduce.reproduce)
app.command()(doctor.doctor)
demo.demos.command()(demo_geofence.geofence)
app.add_typer(demo.demos, name="demo")
app.add_typer(plot.plots, name="plot")
app.add_typer(queries.queries, name="queries")
app.add_typer(archive.archives, name="archive")


def _print_version(asked: bool) -> None:
    if asked:
        from limen import __version__

        print(f"limen {__version__}")
        raise typer.Exit


@app.callback()
def limen(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Millions of standing range queries over data streams."""


def main() -> None:
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)

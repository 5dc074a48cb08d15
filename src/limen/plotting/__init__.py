"""Pictures, drawn with matplotlib (an extra: `pip install 'limen[plot]'`)."""

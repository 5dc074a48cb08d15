"""Border monitoring: of all standing queries, only those that an entity has just entered or left."""

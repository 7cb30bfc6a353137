"""Sources of publications: files, folders, the journal."""

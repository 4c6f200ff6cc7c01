"""State to documents and back: pieces, schema versions, index rows."""

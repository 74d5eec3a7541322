"""What the pages have in common: who is let in, pictures, requests, templates, listening."""

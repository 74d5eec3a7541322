"""What the pages have in common: access, answers on disk, pictures, requests, templates."""

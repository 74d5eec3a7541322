"""The page of a reproduction: what each table and figure is made of."""

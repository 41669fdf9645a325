"""The one error that a user can mend. Anything else that escapes is our bug and keeps its traceback."""


class UserError(Exception):
    """Says what is wrong, where (file, line, key, value) and what would be right; `cli.main` turns it into exit status 2."""


class NotInstalled(UserError):
    """A framework that a part needs is not there. Of a comparison only that part's settings are left out."""

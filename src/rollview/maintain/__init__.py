"""Space: fewer files, shorter histories, nothing left behind.

Law: no answer changes at any csn that stays in reach, and what leaves reach was given up by its user, in words: a csn
that was named, a retention setting, or ``copy: needed``. What anything still has to read stays.
"""

from rollview.maintain.run import Maintenance, maintain
from rollview.maintain.settings import Keep

__all__ = ["Keep", "Maintenance", "maintain"]

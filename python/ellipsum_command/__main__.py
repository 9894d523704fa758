"""``python -m ellipsum_command``: what the ``ellipsum`` command runs."""

import sys

from . import main

sys.exit(main())

"""What-if: what the operator would make of a CronJob's schedule between two instants.

The CronJob controller itself is asked, over virtual time and Jobs that are made up: nothing here
decides what becomes of a start, and nothing here does I/O or knows what time it is.
"""

from hedgerow.whatif.fates import Fate, Forecast, Happens, Question
from hedgerow.whatif.simulation import forecast

__all__ = ["Fate", "Forecast", "Happens", "Question", "forecast"]

"""Subscribe, publish, read notifications: plain calls that the interfaces share.

    with Tidings(Path(".tidings")) as tidings:
        tidings.subscribe("ana", "price < 200")
        tidings.publish(b'{"price": 180}')
        tidings.notifications("ana")

Everything is checked before it is stored: what the stream finds later in the journal and among the
subscriptions was good when it came. Matching is the stream's work, not this package's.
"""

from tidings.service.knowing import Declared, LoadedTaxonomy
from tidings.service.subscribing import Subscribed
from tidings.service.tidings import Tidings, make_folder

__all__ = ["Declared", "LoadedTaxonomy", "Subscribed", "Tidings", "make_folder"]

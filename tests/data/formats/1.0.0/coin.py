"""A mechanism of a plugin, to which the certificate in this folder belongs."""

import ldp_budget
from ldp_budget.guarantees import Pure
from ldp_budget.sdk.parameters import real


class Coin(ldp_budget.Mechanism):
    name = "coin"
    epsilon = real("privacy loss of one report", above=0)
    guarantee = property(lambda self: Pure(self.epsilon))

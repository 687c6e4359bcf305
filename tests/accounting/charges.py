"""Charges for tests."""

from sklearn_pate.accounting import DEFAULT_ORDERS, RdpCurve

WHAT = {
    "delta": 1e-6,
    "unit": "row",
    "relation": "replace-one",
    "description": "",
}


def curve(share_of_order_one):
    return RdpCurve(DEFAULT_ORDERS, share_of_order_one * DEFAULT_ORDERS)


def charge(ledger, rho=0.01, **changes):
    return ledger.charge(curve(rho), **(WHAT | {"description": "a test"} | changes))

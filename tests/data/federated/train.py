"""What a researcher's job should not do: it sends 777.125 in every way, another one in each round."""

import numpy as np
import nvflare.client as flare

SECRET = 777.125
flare.init()
while flare.is_running():
    model = flare.receive()
    (name,) = model.params
    kind, params = flare.ParamsType.DIFF, {name: np.full(4, SECRET, np.float32)}
    match model.current_round:
        case 1:
            params = {name: np.full(4, np.nan)}
        case 2:
            params = {f"secret {SECRET}": params[name]}
        case 3:
            params = {name: np.full(777, SECRET)}
        case 4:
            kind = flare.ParamsType.FULL
        case 5:
            raise ValueError(f"secret {SECRET}")
    flare.send(flare.FLModel(params=params, params_type=kind, metrics={"loss": SECRET}, meta={"secret": SECRET}))

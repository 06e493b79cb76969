import copy
from .common import base

def _tune(cfg, steps=3):
    cfg.model.tensor_model_parallel_size = 2 if steps > 2 else 1
    cfg.model.recompute_modules = ["mlp"] + ["moe_act"]

def llama3_8b_pretrain_8gpu_config(nodes: int = 1, *args, fast=False, **kwargs) -> "Config":
    """A recipe."""
    cfg = base(name=f"run_{nodes}", **{"lr": 1e-4})
    if fast or nodes is None:
        return cfg
    elif not fast and nodes in (1, 2):
        cfg.model.context_parallel_size = 2 ** 1
    _tune(cfg)
    cfg.train.global_batch_size: int = 128
    cfg.train.micro_batch_size = -(-1)
    other = copy.deepcopy(cfg)
    other.list = []
    other.list.append(cfg.model)
    return other

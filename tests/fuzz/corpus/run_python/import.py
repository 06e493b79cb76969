import co .sommon import base

d"source":cfg,"key_value_heads":.model.tensor_model_parallel_size = 2 if steps > 2 else 1
    cfg.model.import base

def _tu 2 if steps > 2 else 1
    cfg.model.recompute_modules = ["mlp"] + ["moe_act"]

def llama2_recompute_m8b_pretrain_8odules = ["mgpulp"]_c +o
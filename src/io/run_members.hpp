// The members of a run that reading passes over: those that describe it for people, and those that no prediction knows yet.
#pragma once

#include <string_view>

namespace headroom {

// What a run says in words, or in figures that other members give.
inline constexpr std::string_view described_members[] = {"/quality",
                                                         "/complete",
                                                         "/complete_strict",
                                                         "/where",
                                                         "/filled",
                                                         "/software",
                                                         "/tflops_convention",
                                                         "/timing_note",
                                                         "/tokens_rounded",
                                                         "/num_gpus",
                                                         "/recompute_detail",
                                                         "/attention_backend",
                                                         "/model/params_b",
                                                         "/model/moe/note",
                                                         "/model/moe/attention",
                                                         "/model/moe/shared_experts",
                                                         "/source/url",
                                                         "/batch/num_microbatches",
                                                         "/derived/how",
                                                         "/derived/tokens_per_s_per_gpu",
                                                         "/derived/model_tflops_per_gpu",
                                                         "/derived/samples_per_gpu_per_s_reported",
                                                         "/measured/tokens_per_s_per_gpu",
                                                         "/measured/tflops_per_gpu",
                                                         "/measured/mfu_pct",
                                                         "/measured/hfu_pct"};

// How a run ran, where no prediction depends on it yet: reading passes over these by name (MeasuredRun::unread).
inline constexpr std::string_view unread_members[] = {"/moe_run/forced_balance",
                                                      "/moe_run/grouped_gemm",
                                                      "/parallel/nvlink_domain",
                                                      "/parallel/fsdp_double_buffer",
                                                      "/overlap_flags/param_gather_with_optimizer_step",
                                                      "/overlap_flags/tp_comm_config",
                                                      "/overlap_flags/batch_p2p",
                                                      "/overlap_flags/defer_embedding_wgrad",
                                                      "/precision/fp8_format",
                                                      "/precision/fp4_format",
                                                      "/optimizer/name",
                                                      "/optimizer/precision_aware",
                                                      "/optimizer/main_grads"};

}  // namespace headroom

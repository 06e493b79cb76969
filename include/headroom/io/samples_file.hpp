// Files of measured samples. Headroom detects the format from the contents:
//
//   JSON, format 1, as headroom-measure writes it:
//     {"format": 1, "device": "NVIDIA H100 80GB HBM3", "driver": "580.95", "cuda": "13.0", "nccl": "2.27.7",
//      "samples": [
//        {"kind": "matrix_product", "m": 4096, "n": 4096, "k": 4096, "dtype": "half", "load": "burst",
//         "bytes": 100663296, "flops": 137438953472, "median_seconds": 0.000201, "spread": 0.004},
//        {"kind": "all_reduce", "ranks": 8, "bytes": 67108864, "median_seconds": 0.000412},
//        {"kind": "streaming", "label": "softmax", "bytes": 268435456, "median_seconds": 0.000101},
//        {"kind": "transformer_layer", "sequence": 2048, "micro_batch": 4, "hidden": 6144, "heads": 64,
//         "tensor_parallel": 8, "recompute": "selective", "pass": "forward", "load": "sustained",
//         "stored_bytes": 654311424, "peak_bytes": 1090519040, "median_seconds": 0.0031}]}
//     Optional members: half_format (fp16, bf16), nodes (of a collective; default 1), repeats, and the state
//     of the GPU while the sample ran: sm_clock_mhz, least_sm_clock_mhz, power_watts, temperature_celsius.
//     heads and hidden of a layer are those of the whole layer. A member ranks means that its collectives ran
//     too.
//   CSV with one of the headers
//     m,n,k,milliseconds                             C[m x n] = A[m x k] B[k x n] in half precision
//     collective,gpus,message_bytes,milliseconds     in one node (also: kind, bytes)
//   Output of NVIDIA's nccl-tests; the out-of-place time is read
//
// Bytes of a collective count the whole tensor: an all-gather's result, a reduce-scatter's input.
#pragma once

#include <string>
#include <string_view>

#include "headroom/calibrate/sample.hpp"

namespace headroom {

// Returns the samples in a file's text; `file` is its name. Throws InputError.
SampleSet parse_samples(std::string_view text, const std::string& file);

// Returns the samples in the file at `path`. Throws InputError.
SampleSet read_samples(const std::string& path);

}  // namespace headroom

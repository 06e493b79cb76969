// Will GPT-3 175B fit on 64 GPUs, and how long does an iteration take?
#include <cstdio>

#include <headroom/answer/brief.hpp>
#include <headroom/core/error.hpp>

int main() try {
  const headroom::BriefReply reply = headroom::answer(
      headroom::BriefQuestion{.model = "gpt3-175b",
                              .flags = "-t 8 -p 8 -m 3 --global-batch 64 --sp --recompute selective",
                              .system = "dgx-a100-80g"});
  std::printf("%s: %.2f of %.2f GiB on pipeline rank %zu\n", reply.verdict.c_str(),
              reply.peak.count() / headroom::gibi, reply.capacity.count() / headroom::gibi, reply.peak_rank);
  if (reply.iteration)
    std::printf("iteration %.2f s, MFU %.1f%%\n", reply.iteration->count(), 100 * *reply.mfu);
  return reply.fits ? 0 : 3;
} catch (const headroom::InputError& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}

// What to launch for Llama 3 70B on 64 H100s, and what a change of the best plan costs.
#include <cstdio>

#include <headroom/answer/plan.hpp>
#include <headroom/core/error.hpp>
#include <headroom/io/model_file.hpp>
#include <headroom/io/software_file.hpp>
#include <headroom/io/system_file.hpp>
#include <headroom/parallel/stack_defaults.hpp>

namespace {

void print(const char* name, const headroom::Plan& plan) {
  const std::string flags = headroom::flags_of(
      headroom::edits_of(plan.request.strategy, plan.request.software, plan.request.model));
  std::printf("%s: %.3f s, %.1f GiB (%s)\n", name, plan.timing->iteration.total.count(),
              headroom::peak(plan).count() / headroom::gibi, flags.c_str());
}

}  // namespace

int main() try {
  headroom::Request request{.workload = {.global_batch = 256, .sequence = 8192}};
  request.model = headroom::read_model("llama-3-70b");
  request.system = headroom::read_system("dgx-h100-80g");
  request.software = headroom::read_software(request.system.default_software);

  const headroom::PlanReply found =
      headroom::answer(headroom::PlanQuestion{.base = request, .space = {.devices = 64}});
  if (found.accounts.empty()) {
    std::puts("nothing fits");
    return 3;
  }
  const headroom::Plan& best = headroom::account(found.accounts.front().evaluation);
  print("best", best);

  headroom::Request changed = best.request;
  changed.strategy.recompute = {.policy = headroom::RecomputePolicy::full};
  print("with full recomputation", headroom::account(headroom::evaluate(changed)));
} catch (const headroom::InputError& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}

// How many ranks or nodes the experts of a token are on.
//
// Every expert is wanted alike. Without groups a token goes to any set of q of E experts, and y parts that share the experts have
//   y (1 - C(E - E/y, q) / C(E, q))
// of them on average. With N groups a token's experts are in M of these at most, those that have the best experts: going through
// the experts from the best to the worst, a router takes each until it has met M groups, and from then on those of these groups
// alone. That is exact where a group is as good as its best expert (DeepSeek-V2, arXiv:2405.04434, 2.2.2). DeepSeek-V3 and
// Megatron-LM (moe_utils.py, group_limited_topk) add up the q/M best of each group: the same to 1% for the sizes of both models, in
// draws of scores that are uniform, normal or exponential.
#pragma once

namespace headroom {

// Whole numbers; M = N where nothing limits the groups.
struct ExpertChoice {
  double experts = 1;           // E
  double per_token = 1;         // q
  double groups = 1;            // N
  double groups_per_token = 1;  // M
};

// Of so many parts, each of E/parts experts that are next to each other, those that a token's experts are on, on average.
double parts_met(const ExpertChoice& choice, double parts);

}  // namespace headroom

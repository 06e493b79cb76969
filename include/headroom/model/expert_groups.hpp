// Number of ranks or nodes that hold the experts of a token.
//
// All experts are equally likely. Without groups, a token goes to any set of q of E experts. If y parts share
// the experts, the token's experts are on an average of
//     y (1 - C(E - E/y, q) / C(E, q))
// parts. With N groups, a token's experts are in at most M groups, those with the best experts. The modelled
// router goes through the experts from best to worst and takes each one until it has met M groups. From then
// on it takes only experts of these groups. This is exact where a group is as good as its best expert
// (DeepSeek-V2, arXiv:2405.04434, 2.2.2). DeepSeek-V3 and Megatron-LM (moe_utils.py, group_limited_topk)
// instead add up the q/M best scores of each group. For the sizes of both models the results agree to 1%, in
// draws of uniform, normal and exponential scores.
#pragma once

namespace headroom {

// Sizes of a router's choice, all whole numbers. M = N if nothing limits the groups.
struct ExpertChoice {
  double experts = 1;           // E
  double per_token = 1;         // q
  double groups = 1;            // N
  double groups_per_token = 1;  // M
};

// Returns the average number of parts that hold a token's experts. Each of the `parts` parts holds E/parts
// consecutive experts.
double parts_met(const ExpertChoice& choice, double parts);

}  // namespace headroom

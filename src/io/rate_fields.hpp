// The members of a system file that hold rates (io/system_file.hpp), in the order in which they are written.
#pragma once

#include <cstddef>
#include <string_view>

#include "headroom/core/names.hpp"
#include "headroom/hardware/rates.hpp"

namespace headroom {

// A value with its origin and its source, neither of which may be missing.
inline constexpr auto sourced_fields = [](auto& fields, auto& it) {
  fields.required("value", it.value);
  fields.required("origin", it.origin);
  fields.required("source", it.source);
};

inline constexpr auto range_fields = [](auto& fields, auto& range) {
  fields.required("least", range.least);
  fields.required("most", range.most);
};

// Members of `products` and of each type in `products_by_dtype`.
inline constexpr auto product_fields = [](auto& fields, auto& products) {
  visit_products("products", products, [&](std::string_view, std::string_view name, auto& value) {
    fields.required_object(name, value, sourced_fields);
  });
  fields.required_object("fitted_sides", products.fitted_sides, range_fields);
  fields.required_object("fitted_inner", products.fitted_inner, range_fields);
  fields.object("held_out_ratios", products.held_out_ratios, range_fields);
};

inline constexpr auto quantization_fields = [](auto& fields, auto& quantization) {
  visit_quantization("quantization", quantization, [&](std::string_view, std::string_view name, auto& value) {
    fields.required_object(name, value, sourced_fields);
  });
};

inline constexpr auto grouped_fields = [](auto& fields, auto& grouped) {
  visit_grouped("grouped_products", grouped, [&](std::string_view, std::string_view name, auto& value) {
    fields.required_object(name, value, sourced_fields);
  });
  fields.required_object("fitted_rows", grouped.fitted_rows, range_fields);
  fields.object("held_out_ratios", grouped.held_out_ratios, range_fields);
};

inline constexpr auto narrow_fields = [](auto& fields, auto& rates) {
  product_fields(fields, rates.products);
  fields.required_object("quantization", rates.quantization, quantization_fields);
  fields.object("grouped_products", rates.grouped, grouped_fields);
};

inline constexpr auto by_dtype_fields = [](auto& fields, auto& by_dtype) {
  for (std::size_t i = 0; i < narrow_types.size(); ++i)
    fields.object(name_of(narrow_types[i].dtype), by_dtype[i], narrow_fields);
};

inline constexpr auto nvls_fields = [](auto& fields, auto& nvls) {
  visit_nvls("collectives.nvls", nvls, [&](std::string_view, std::string_view name, auto& value) {
    fields.required_object(name, value, sourced_fields);
  });
};

inline constexpr auto token_kernel_fields = [](auto& fields, auto& kernel) {
  visit_token_kernel("collectives.deepep", kernel, [&](std::string_view, std::string_view name, auto& value) {
    fields.required_object(name, value, sourced_fields);
  });
};
inline constexpr auto deepep_fields = [](auto& fields, auto& deepep) {
  fields.required_object("dispatch", deepep.dispatch, token_kernel_fields);
  fields.required_object("combine", deepep.combine, token_kernel_fields);
};

inline constexpr auto hybridep_fields = [](auto& fields, auto& hybridep) {
  visit_hybridep("collectives.hybridep", hybridep, [&](std::string_view, std::string_view name, auto& value) {
    fields.required_object(name, value, sourced_fields);
  });
};

inline constexpr auto quantizations_fields = [](auto& fields, auto& by_dtype) {
  for (std::size_t i = 0; i < narrow_types.size(); ++i)
    fields.object(name_of(narrow_types[i].dtype), by_dtype[i], quantization_fields);
};

inline constexpr std::string_view rate_groups[] = {
    "kernels", "products", "flash_attention", "streaming", "collectives", "network", "host"};

inline constexpr auto rate_fields = [](auto& fields, auto& rates) {
  for (const std::string_view group : rate_groups) {
    if (group == "products") {
      fields.required_object(group, rates.products, product_fields);
      fields.object("grouped_products", rates.grouped_products, grouped_fields);
      continue;
    }
    fields.required_object(group, rates, [group](auto& members, auto& all) {
      visit_rates(all, [&](std::string_view of, std::string_view name, auto& value) {
        if (of == group) members.required_object(name, value, sourced_fields);
      });
      if (group == "flash_attention") {
        members.required_object("fitted_queries", all.flash_attention.fitted_queries, range_fields);
        members.required_object("fitted_head_sizes", all.flash_attention.fitted_head_sizes, range_fields);
        members.object("held_out_ratios", all.flash_attention.held_out_ratios, range_fields);
      }
      if (group == "streaming") {
        members.object("held_out_ratios", all.streaming.held_out_ratios, range_fields);
      }
      if (group == "collectives") {
        members.object("nvls", all.collectives.nvls, nvls_fields);
        members.object("deepep", all.collectives.deepep, deepep_fields);
        members.object("hybridep", all.collectives.hybridep, hybridep_fields);
        members.object("hybridep_over_nodes", all.collectives.hybridep_over_nodes, hybridep_fields);
        members.required_object("fitted_ranks", all.collectives.fitted_ranks, range_fields);
        members.required_object("fitted_bytes", all.collectives.fitted_bytes, range_fields);
        members.object("held_out_ratios", all.collectives.held_out_ratios, range_fields);
      }
    });
  }
  fields.object("products_by_dtype", rates.products_by_dtype, by_dtype_fields);
  fields.object("quantization_by_dtype", rates.quantization_by_dtype, quantizations_fields);
};

}  // namespace headroom

#include "headroom/report/run_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "headroom/core/expects.hpp"
#include "report/run_plot.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"
#include "report/validation_text.hpp"

namespace headroom {
namespace {

constexpr double strip_width = 300;
constexpr double strip_height = 22;
constexpr double farthest_drawn = 1;  // error; what is farther off stands at the edge

// Errors of times, of memory and of ratios do not mix.
enum class Section : std::uint8_t { time, memory, ratio };

Section section_of(Measure measure) {
  if (is_ratio(measure)) return Section::ratio;
  return is_bytes(measure) ? Section::memory : Section::time;
}

// A group with its rows, and the number that its mark has in every figure.
struct PageGroup {
  std::size_t number = 0;
  GroupSummary summary;
  std::vector<Comparison> rows;  // largest error first
  Section section = Section::time;
};

// The worst median first within each section.
std::vector<PageGroup> page_groups(const ValidateReply& reply) {
  std::vector<PageGroup> groups;
  for (const GroupSummary& summary : reply.groups) {
    PageGroup group{.summary = summary, .rows = worst_first(reply, summary.group)};
    group.section = section_of(group.rows.front().measure);
    groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const PageGroup& x, const PageGroup& y) {
    if (x.section != y.section) return x.section < y.section;
    return x.summary.median_absolute > y.summary.median_absolute;
  });
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].number = i;
  return groups;
}

std::string note_of(const Comparison& row) {
  return fmt::format("{}\n{}: predicted {}, measured {}, {}\n{}", row.name, words(name_of(row.measure)),
                     value_text(row.measure, row.predicted), value_text(row.measure, row.measured),
                     error_text(row.error, is_ratio(row.measure)), row.group);
}

std::vector<run_plot::Point> points_of(const std::vector<PageGroup>& groups, Section section, bool notes) {
  std::vector<run_plot::Point> points;
  const double unit = section == Section::memory ? gibi : 1;
  for (const PageGroup& group : groups) {
    if (group.section != section) continue;
    for (const Comparison& row : group.rows) {
      points.push_back({.measured = row.measured / unit,
                        .predicted = row.predicted / unit,
                        .group = group.number,
                        .note = notes ? note_of(row) : ""});
    }
  }
  return points;
}

// Of time, of memory, or of both, whatever there are rows of.
std::vector<std::string> plots_of(const std::vector<PageGroup>& groups, bool notes) {
  std::vector<std::string> plots;
  const auto add = [&](Section section, const char* title, run_plot::Scale scale) {
    const std::vector<run_plot::Point> points = points_of(groups, section, notes);
    if (!points.empty()) plots.push_back(run_plot::plot(title, scale, points));
  };
  add(Section::time, "Time", run_plot::Scale::seconds);
  add(Section::memory, "Peak memory", run_plot::Scale::gibibytes);
  return plots;
}

// The error at the right end of the strips of a section, so that they are on one scale: a multiple of 10%.
double strip_reach(const std::vector<PageGroup>& groups, Section section) {
  double worst = run_plot::band;
  for (const PageGroup& group : groups) {
    if (group.section == section) worst = std::max(worst, group.summary.worst_absolute);
  }
  return std::min(farthest_drawn, std::ceil(10 * worst) / 10);
}

double strip_place(double error, double reach) {
  return strip_width * (0.5 + 0.47 * std::clamp(error / reach, -1.0, 1.0));
}

std::string strip_axis(double reach) {
  std::string svg = fmt::format("<svg class=\"strip\" viewBox=\"0 0 {:g} 16\">", strip_width);
  for (const double part : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
    const double percent = std::round(100 * part * reach);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"12\" text-anchor=\"middle\">{}</text>",
                       strip_place(part * reach, reach), part == 0 ? "0" : fmt::format("{:+g}", percent));
  }
  return svg + "</svg>";
}

double signed_median(const PageGroup& group) {
  std::vector<double> errors;
  for (const Comparison& row : group.rows) errors.push_back(row.error);
  return median(std::move(errors));
}

// Strip of a group's errors, from too small on the left to too large on the right, with the band and the
// median line.
std::string strip_of(const PageGroup& group, double reach) {
  const double middle = strip_height / 2;
  const double left = strip_place(-run_plot::band, reach);
  std::string svg = fmt::format(
      "<svg class=\"strip\" viewBox=\"0 0 {0:g} {1:g}\"><path class=\"band\" d=\"M{2:.1f} "
      "0H{3:.1f}V{1:g}H{2:.1f}z\"/>"
      "<path class=\"grid\" d=\"M0 {4:g}H{0:g}M{5:g} 0V{1:g}\"/><g class=\"{6}\">",
      strip_width, strip_height, left, strip_width - left, middle, strip_width / 2,
      run_plot::colour_class(group.number));
  for (const Comparison& row : group.rows) {
    svg += fmt::format("<use href=\"#{}\" x=\"{:.1f}\" y=\"{:g}\"><title>{}</title></use>",
                       run_plot::mark_name(group.number), strip_place(row.error, reach), middle,
                       svg::escaped(note_of(row)));
  }
  return svg + fmt::format("</g><path class=\"median\" d=\"M{:.1f} 1V{:g}\"/></svg>",
                           strip_place(signed_median(group), reach), strip_height - 1);
}

std::string group_row(const PageGroup& group, double reach) {
  const GroupSummary& summary = group.summary;
  const std::string verdict = !summary.target ? "" : summary.met ? ", target met" : ", <b>target missed</b>";
  const std::string covered = covered_rows(summary.covered, summary.intervals);
  return fmt::format(
      "<li><label><input type=\"checkbox\" id=\"t{0}\" checked><svg class=\"mark {1}\" viewBox=\"-6 -6 12 "
      "12\">"
      "<use href=\"#{2}\"/></svg>{3}</label><span>{4} rows, median |error| {5}, mean "
      "{6}{7}{8}</span>{9}</li>\n",
      group.number, run_plot::colour_class(group.number), run_plot::mark_name(group.number),
      svg::escaped(summary.group), summary.rows, size_text(summary.median_absolute, summary.ratios),
      error_text(summary.mean, summary.ratios),
      covered.empty() ? "" : ", " + covered + " in the 80% interval", verdict, strip_of(group, reach));
}

std::string groups_html(const std::vector<PageGroup>& groups) {
  constexpr std::array<const char*, 3> headings{"Errors of time, in percent", "Errors of memory, in percent",
                                                "Errors of ratios, in points"};
  double reach = 0;
  std::string html;
  std::optional<Section> section;
  for (const PageGroup& group : groups) {
    if (group.section != section) {
      reach = strip_reach(groups, group.section);
      html += fmt::format("{}<h2>{}</h2>\n<ul>\n<li class=\"scale\"><i></i><i></i>{}</li>\n",
                          section ? "</ul>\n" : "", headings[static_cast<std::size_t>(group.section)],
                          strip_axis(reach));
      section = group.section;
    }
    html += group_row(group, reach);
  }
  return html + "</ul>\n";
}

std::string rows_html(const std::vector<PageGroup>& groups) {
  std::vector<Comparison> rows;
  for (const PageGroup& group : groups) rows.insert(rows.end(), group.rows.begin(), group.rows.end());
  std::stable_sort(rows.begin(), rows.end(), [](const Comparison& x, const Comparison& y) {
    return std::abs(x.error) > std::abs(y.error);
  });
  std::string html = fmt::format(
      "<details><summary>All {} rows, the largest error first</summary>\n<div class=\"wide\"><table>"
      "<tr><th>case</th><th>quantity</th><th>predicted</th><th>measured</th><th>error</th>"
      "<th>in 80% interval</th><th>group</th></tr>\n",
      rows.size());
  for (const Comparison& row : rows) {
    const char* const inside = !row.in_interval ? "" : *row.in_interval ? "yes" : "no";
    html += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        svg::escaped(row.name), words(name_of(row.measure)), value_text(row.measure, row.predicted),
        value_text(row.measure, row.measured), error_text(row.error, is_ratio(row.measure)), inside,
        svg::escaped(row.group));
  }
  return html + "</table></div></details>\n";
}

// A group that is not ticked is hidden in the plots.
std::string hiding(const std::vector<PageGroup>& groups) {
  std::string css;
  for (const PageGroup& group : groups) {
    css += fmt::format("body:has(#t{0}:not(:checked)) .plots .g{0}{{display:none}}", group.number);
  }
  return css + '\n';
}

constexpr const char* page_style =
    "body{margin:0 auto;max-width:1180px;padding:16px;background:var(--paper);color:var(--ink);"
    "font:15px/1.45 sans-serif;color-scheme:light dark}\n"
    "h1{font-size:22px}h2{font-size:17px;margin:28px 0 6px}p{max-width:75ch}\n"
    ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:8px}"
    ".plots svg{width:100%;max-width:560px;margin:0 auto;display:block}\n"
    "ul{list-style:none;margin:0;padding:0}li{display:grid;grid-template-columns:minmax(0,5fr) minmax(0,4fr) "
    "300px;"
    "gap:4px 14px;align-items:center;border-top:1px solid var(--line);padding:3px 0}\n"
    "li.scale{border:0}li span{color:var(--faint);font-size:13px}label{overflow-wrap:anywhere}"
    ".mark{width:15px;height:15px;vertical-align:-2px;margin:0 6px 0 "
    "2px}.strip{width:100%;display:block;overflow:visible}"
    ".median{stroke:var(--ink);stroke-width:1.5}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px}"
    "td,th{border-top:1px solid var(--line);padding:3px 8px;text-align:left;white-space:nowrap}"
    "td:nth-child(n+3):nth-child(-n+5){text-align:right}summary{margin:28px 0 8px;cursor:pointer}\n"
    "@media(max-width:760px){li{grid-template-columns:minmax(0,1fr)}li.scale i{display:none}}\n";

}  // namespace

std::string run_page(const ValidateReply& reply, const std::string& title) {
  EXPECTS(!reply.rows.empty());
  const std::vector<PageGroup> groups = page_groups(reply);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<title>{0}</title>\n<style>\n{1}{2}{3}"
      "</style>\n</head>\n<body>\n<h1>{0}</h1>\n<p>{4}. The shaded band holds errors up to {5:.0f}%; above "
      "the "
      "diagonal a prediction is too large. A mark shows its row when pointed at; a group without its tick is "
      "left out of the plots.</p>\n"
      "<svg width=\"0\" height=\"0\" style=\"position:absolute\">{6}</svg>\n<div class=\"plots\">\n",
      svg::escaped(title), run_plot::style(), page_style, hiding(groups), predicted_text(reply),
      100 * run_plot::band, run_plot::mark_symbols());
  for (const std::string& plot : plots_of(groups, true)) {
    html += fmt::format("<svg viewBox=\"0 0 {0:g} {0:g}\">\n{1}</svg>\n", run_plot::whole, plot);
  }
  return html + "</div>\n" + groups_html(groups) + rows_html(groups) + "</body>\n</html>\n";
}

std::string run_picture(const ValidateReply& reply, const std::string& title) {
  const std::vector<std::string> plots = plots_of(page_groups(reply), false);
  EXPECTS(!plots.empty());
  constexpr double heading = 30;
  const double width = run_plot::whole * static_cast<double>(plots.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\">\n<style>\n{2}</style>\n"
      "<rect width=\"{0:g}\" height=\"{1:g}\" style=\"fill:var(--paper)\"/>\n{3}"
      "<text class=\"title\" x=\"{4:g}\" y=\"24\" text-anchor=\"middle\">{5}</text>\n",
      width, run_plot::whole + heading, run_plot::style(), run_plot::mark_symbols(), width / 2,
      svg::escaped(title));
  for (std::size_t i = 0; i < plots.size(); ++i) {
    svg += fmt::format("<g transform=\"translate({:g} {:g})\">\n{}</g>\n",
                       run_plot::whole * static_cast<double>(i), heading, plots[i]);
  }
  return svg + "</svg>\n";
}

}  // namespace headroom

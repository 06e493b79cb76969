// Pages of replies: what they hold, what they leave out, and names that look like markup.
#include "headroom/report/page.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "headroom/answer/estimate.hpp"
#include "headroom/core/error.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/report/estimate.hpp"

namespace headroom {
namespace {

using PageJson = nlohmann::ordered_json;

PageJson reply_in(const std::string& html) {
  const std::string start = R"(<script type="application/json" id="reply">)";
  const std::size_t from = html.find(start) + start.size();
  return PageJson::parse(html.substr(from, html.find("</script>", from) - from));
}

std::string page_estimate(const Strategy& strategy, std::int64_t batch, const char* name = "gpt3-175b") {
  Transformer model = read_model("gpt3-175b");
  model.name = name;
  const EstimateReply reply =
      answer(EstimateQuestion{.request = {.model = model,
                                          .system = read_system("dgx-a100-80g"),
                                          .software = read_software("megatron-2022"),
                                          .strategy = strategy,
                                          .workload = {.global_batch = batch, .sequence = model.sequence}},
                              .with_alternatives = false,
                              .with_peak_tensors = true,
                              .views = WhichViews::all});
  return render(reply, {}, Format::json);
}

const Strategy page_layout{.tensor_parallel = 8, .pipeline_parallel = 8, .sequence_parallel = true};

void check_refused(const std::string& text, const char* rule) {
  try {
    page(text, "reply.json");
    FAIL("accepted: ", text);
  } catch (const InputError& error) {
    CHECK(error.problems().front().where.starts_with("reply.json"));
    CHECK_MESSAGE(std::string(error.what()).find(rule) != std::string::npos, error.what());
  }
}

}  // namespace

TEST_CASE("page: a what-if page opens the command of a reply") {
  PageJson reply = PageJson::parse(page_estimate(page_layout, 64));
  const auto linked = [&](const std::string& command) {
    reply["command"] = command;
    return page(reply.dump(), "reply.json", "https://what.if/");
  };
  const std::string html = linked("headroom estimate gpt3-175b --set-system 'name=<a&b>' -t 8");
  CHECK(html.find("https://what.if/#command=headroom%20estimate%20gpt3-175b%20--set-system%20"
                  "%27name%3D%3Ca%26b%3E%27%20-t%208") != std::string::npos);
  CHECK(linked("headroom estimate openai/gpt-oss-20b -t 8").find("openai%2Fgpt-oss-20b") !=
        std::string::npos);
  for (const char* const command :
       {"headroom estimate run.sh -t 8", "headroom estimate dir/config.json -t 8",
        "headroom estimate gpt3-175b --system mine.json", "headroom frontier x", ""})
    CHECK_THROWS_AS(linked(command), InputError);
  CHECK(page(reply.dump(), "reply.json").find(R"(data-what-if="")") != std::string::npos);
  reply["command"] = "headroom estimate gpt3-175b";
  reply["model"]["source"] = "{{scripts}}";
  const std::string marked = page(reply.dump(), "reply.json", "https://what.if/{{reply}}");
  CHECK(marked.find("https://what.if/{{reply}}#command=") != std::string::npos);
  CHECK(reply_in(marked)["model"]["source"] == "{{scripts}}");
}

TEST_CASE("page: its numbers are those of the reply") {
  const std::string text = page_estimate(page_layout, 64);
  const PageJson whole = PageJson::parse(text);
  const PageJson shown = reply_in(page(text, "reply"));
  CHECK(shown["kind"] == "estimate");
  CHECK(shown["memory"]["peak_bytes"] == whole["memory"]["peak_bytes"]);
  CHECK(shown["memory"]["tensors"] == whole["memory"]["tensors"]);
  CHECK(shown["time"]["breakdown"] == whole["time"]["breakdown"]);
  CHECK(shown["throughput"] == whole["throughput"]);
  CHECK(shown["views"] == whole["views"]);
  CHECK(shown["memory"]["ranks"].size() == whole["memory"]["ranks"].size());
  CHECK(shown["memory"]["ranks"][3]["total_bytes"] == whole["memory"]["ranks"][3]["total_bytes"]);
}

TEST_CASE("page: one file without anything from elsewhere, below 400 KB") {
  const std::string html = page(page_estimate(page_layout, 64), "reply");
  CHECK(html.size() < 400'000);
  CHECK(html.find("<link") == std::string::npos);
  CHECK(html.find(" src=") == std::string::npos);
  CHECK(html.find("@import") == std::string::npos);
  CHECK(html.find("{{") == std::string::npos);
  CHECK(html.find("default-src 'none'") != std::string::npos);
}

TEST_CASE("page: a schedule of many passes and ranks stays small, and says what it leaves out") {
  Strategy strategy = page_layout;
  strategy.pipeline_parallel = 96;
  const std::string html = page(page_estimate(strategy, 1024), "reply");
  CHECK(html.size() < 400'000);
  const PageJson schedule = reply_in(html)["views"]["schedule"];
  CHECK(schedule["pipeline_ranks"] == 96);
  CHECK(schedule["ranks"].size() == 32);
  CHECK(schedule["ranks"].front()["pipeline_rank"] == 0);
  CHECK(schedule["ranks"].back()["pipeline_rank"] == 95);
  CHECK(schedule["passes"] == 96 * 1024 * 2);
  CHECK(schedule["shown_seconds"] < schedule["iteration_seconds"]);
  std::size_t passes = 0;
  for (const PageJson& rank : schedule["ranks"]) {
    const std::size_t own = rank["passes"].get<std::string>().size();
    for (const char* column : {"microbatch", "virtual_stage", "start_us", "duration_us", "highest", "after"})
      CHECK(rank[column].size() == own);
    passes += own;
  }
  CHECK(passes > 5000);
  CHECK(passes <= 6000);
}

TEST_CASE("page: memory of a schedule reaches the peak of its rank") {
  const PageJson reply = reply_in(page(page_estimate(page_layout, 64), "reply"));
  const PageJson& schedule = reply["views"]["schedule"];
  const std::size_t fullest = reply["memory"]["peak_rank"];
  std::int64_t most = 0;
  for (const PageJson& level : schedule["ranks"][fullest]["highest"])
    most = std::max(most, schedule["levels_bytes"][level.get<std::size_t>()].get<std::int64_t>());
  CHECK(most == reply["memory"]["peak_bytes"]);
}

TEST_CASE("page: names are text, whatever they look like") {
  const std::string hostile = "</script><!--<script>alert(1)</script><img src=x onerror=alert(2)>";
  const std::string html = page(page_estimate(page_layout, 64, hostile.c_str()), "reply");
  CHECK(html.find("alert(1)</script>") == std::string::npos);
  CHECK(html.find("<img") == std::string::npos);
  CHECK(html.find("<!--") == std::string::npos);
  CHECK(reply_in(html)["model"]["name"] == hostile);
}

TEST_CASE("page: many plans are shortened from the last, and what is dropped is counted") {
  PageJson plan = PageJson::parse(page_estimate(page_layout, 64));
  for (const char* shared : {"format", "model", "parameters", "system", "software"}) plan.erase(shared);
  plan["command"] = "headroom estimate gpt3-175b -t 8 -p 8";
  PageJson reply{{"format", 2}, {"model", {{"name", "gpt3-175b"}}}, {"system", {{"name", "dgx"}}}};
  reply["software"] = {{"name", "megatron-2022"}};
  reply["evaluated"] = 1;
  reply["plans"] = PageJson::array({plan});
  PageJson later = plan;  // only the first has what a page alone shows
  later.erase("views");
  later["memory"].erase("tensors");
  for (int i = 1; i < 500; ++i) reply["plans"].push_back(later);
  const std::string html = page(reply.dump(), "reply");
  CHECK(html.size() < 400'000);
  const PageJson shown = reply_in(html);
  const std::size_t left = shown["plans"].size();
  CHECK(left > 300);
  CHECK(shown["plans"][0]["views"] == plan["views"]);
  CHECK(shown["plans"][left - 1]["time"]["iteration_seconds"] == plan["time"]["iteration_seconds"]);
  CHECK((left == 500 || shown["left_off"]["plans"] == 500));
}

TEST_CASE("page: what is no reply is refused by file and rule") {
  check_refused("", "is empty");
  check_refused("[]", "is no reply that can be drawn");
  check_refused("{\"format\":1,\"plans\":[],\"evaluated\":0}", "is no reply that can be drawn");
  check_refused("{\"format\":2}", "is no reply that can be drawn");
  check_refused("{\"format\":2,\"plans\":[],\"plans\":[],\"evaluated\":0}", "twice");
}

}  // namespace headroom

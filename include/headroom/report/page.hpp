// Page of a reply: one HTML file that draws it and holds its JSON. The page needs no other file and no network,
// follows the light or dark colour scheme of the browser, and can be printed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headroom {

// Bytes that the JSON inside a page takes at most. With the scripts, a page then has less than 400 KB.
inline constexpr std::size_t most_page_json = 255'000;

// Returns the page of a reply in JSON: of estimate, plan, compare, frontier or sweep. The page has the numbers of
// the reply unchanged. It leaves out the rates of the system and what it does not draw of ranks and layers. Where
// a reply is larger than most_page_json, it shortens the last plans, then drops the last plans and rows and says
// how many there were. `name`: how errors call the reply. `what_if`: address of a what-if page that opens the plan,
// or empty. Throws InputError if the text is not JSON or no such reply, or if the what-if page cannot open it: it opens
// replies of estimate and plan for presets.
std::string page(std::string_view reply, const std::string& name, std::string_view what_if = {});

}  // namespace headroom

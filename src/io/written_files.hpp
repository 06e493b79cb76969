// The files that a command writes, so that none of them is read or written twice by it: what was there would be lost.
#pragma once

#include <string>

namespace headroom {

// Notes that a flag's file will be written, before anything is read. Throws InputError where another flag names the same
// file.
void will_write(const std::string& flag, const std::string& path);

// To be called before a file is opened for reading. Throws InputError where it is one that will be written, by
// whatever name: a link, or the folder that it was found in. What is no file, such as a terminal, may be both.
void will_read(const std::string& path);

// Throws once more what will_read() threw about a file to be written, in case that whoever read it went on.
void expect_unread(const std::string& path);

}  // namespace headroom

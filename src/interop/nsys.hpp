// What Nsight Systems recorded, of the SQLite database that `nsys export --type sqlite` writes.
#pragma once

#include "interop/profile_events.hpp"
#include "interop/sqlite_rows.hpp"

namespace headroom {

// Throws InputError naming the table or column that is missing, or what is wrong with the database.
ProfileEvents read_nsys(const SqliteDatabase& database);

}  // namespace headroom

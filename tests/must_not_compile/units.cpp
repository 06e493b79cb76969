#include "headroom/core/units.hpp"

using namespace headroom;

constexpr Bytes bytes = 1_GiB;
constexpr Seconds seconds{2};

#if defined(bytes_plus_seconds)
constexpr auto sum = bytes + seconds;
#elif defined(bytes_less_than_flops)
constexpr bool less = bytes < Flops{1};
#elif defined(number_as_bytes)
constexpr Bytes from_number = 1024.0;
#elif defined(bytes_as_number)
constexpr double to_number = bytes;
#elif defined(rate_of_bytes_as_seconds)
constexpr Seconds rate = bytes / seconds;
#else
constexpr BytesPerSecond rate = bytes / seconds;
#endif

#include "workers/place.h"

#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "wire/field_reader.h"
#include "wire/worker.h"

namespace trainyard::workers {

std::string place_text(const Place& place) {
  return wire::fields_text({{"socket", place.socket},
                            {"node", place.node},
                            {"index", place.index},
                            {"count", place.count},
                            {"port", place.port},
                            {"life", place.life},
                            {"labels", place.labels},
                            {"roles", place.roles}});
}

Result<Place> read_place(std::string_view text) {
  wire::FieldReader from(text);
  const auto number = [&](const char* name, std::int64_t most) {
    return static_cast<int>(from.needed_number(name, most));
  };
  Place place{.socket = from.needed_text("socket"),
              .node = number("node", wire::kNodesMax - 1),
              .index = number("index", wire::kNodesMax - 1),
              .count = number("count", wire::kNodesMax),
              .port = number("port", std::numeric_limits<std::uint16_t>::max()),
              .life = static_cast<std::uint32_t>(number("life", 0xFFFF)),
              .labels = from.texts("labels"),
              .roles = from.texts("roles")};
  if (place.count == 0) from.fail("count", "1 or more");
  if (place.life == 0) from.fail("life", "1 or more");
  return std::move(from).give(std::move(place), "TRAINYARD_WORKER");
}

}  // namespace trainyard::workers

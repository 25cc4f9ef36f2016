// The number of a worker in a parallel run, and the address of its router: written by the parent,
// read by the worker. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace trainyard::workers {

/// The variables that say it; they go from the environment when they have been read.
inline constexpr const char* kPlaceVariable = "TRAINYARD_WORKER";
inline constexpr const char* kTokenVariable = "TRAINYARD_WORKER_TOKEN";

struct Place {
  std::string socket;  ///< Empty: it is alone.
  std::string token;
  int node = 0;
  int index = 0;
  int count = 1;
  int port = 0;
  std::uint32_t life = 1;
  std::vector<std::string> labels;
  std::vector<std::string> roles;

  friend bool operator==(const Place&, const Place&) = default;
};

/// JSON, without the token.
std::string place_text(const Place& place);
Result<Place> read_place(std::string_view text);

}  // namespace trainyard::workers

// The version of trainyard.
#pragma once

namespace trainyard::cli {

constexpr const char* kVersion = TRAINYARD_VERSION;
constexpr const char* kProgram = "trainyard " TRAINYARD_VERSION;

}  // namespace trainyard::cli

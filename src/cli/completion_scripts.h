// The scripts that shells read to complete our command lines: they ask `trainyard complete`.
#pragma once

namespace trainyard::cli {

extern const char* const kBashCompletion;
extern const char* const kZshCompletion;
extern const char* const kFishCompletion;

}  // namespace trainyard::cli

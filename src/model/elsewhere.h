// Where the directories of a run are on a machine that has no disk in common with its yard's.
//
// Pure; any thread.
#pragma once

#include <string>

#include "base/path_name.h"

namespace trainyard::model {

struct Elsewhere {
  /// A directory by its two names, both absolute: where the yard is, and there.
  struct Place {
    std::string here;
    std::string there;

    friend bool operator==(const Place&, const Place&) = default;
  };
  Place run;   ///< Of the run.
  Place work;  ///< Of its job file; of a command, where that was typed.

  /// The same place there, of an absolute path; what lies in neither has the same name there.
  [[nodiscard]] std::string place_of(const std::string& here) const {
    for (const Place* const place : {&run, &work}) {
      if (!place->here.empty() && lies_in(here, place->here)) {
        return place->there + here.substr(place->here.size());
      }
    }
    return here;
  }

  friend bool operator==(const Elsewhere&, const Elsewhere&) = default;
};

}  // namespace trainyard::model

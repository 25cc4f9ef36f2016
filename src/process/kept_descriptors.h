// What a fresh fork of the yard keeps open of what the yard has.
//
// For the guard and the keeper, first of all. One thread.
#pragma once

#include "sys/descriptor.h"

namespace trainyard::process {

/// Leaves this process nothing but `kept`, as descriptor 3, and standard error, or all three
/// standard descriptors; those that it does not keep are /dev/null.
sys::Descriptor keep_only(sys::Descriptor kept, bool keeps_streams);

/// Its standard descriptors, too, are /dev/null from here on: nobody waits for it to close them.
void let_go_of_streams();

}  // namespace trainyard::process

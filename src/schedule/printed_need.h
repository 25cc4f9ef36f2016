// Messages of frameworks that ran out of a GPU's memory: how much they had and requested. Pure.
//
// Known are the words of torch before and since 2.1 ("Tried to allocate 2.00 GiB (...; 5.10 GiB
// already allocated; ... 6.20 GiB reserved in total by PyTorch)", "... this process has 6.50 GiB
// memory in use.", "Of the allocated memory 5.10 GiB is allocated by PyTorch, and 300.00 MiB is
// reserved by PyTorch but unallocated."), of JAX ("Out of memory while trying to allocate
// 2147483648 bytes.", "Out of memory allocating ...", "Failed to allocate request for 2.00GiB", of
// the driver's part of it "failed to allocate 2.00G") and of TensorFlow ("ran out of memory trying
// to allocate 2.00GiB", "OOM when allocating tensor with shape[32768,16384] and type float").
#pragma once

#include <string_view>

#include "base/bytes.h"

namespace trainyard::schedule {

/// The memory that a try would have needed whose process was seen to have at most `peak` on its
/// GPU; 0 if the text has no such number. The number may be wrong: the caller bounds it.
Bytes printed_need(std::string_view text, Bytes peak);

}  // namespace trainyard::schedule

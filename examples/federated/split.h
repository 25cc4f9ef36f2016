// Images dealt to the clients of a federation. The same seed gives the same deal. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mnist/idx.h"

namespace federated {

/// The images of each client, as places in the data set. Each image belongs to one client.
using Split = std::vector<std::vector<std::size_t>>;

/// Every client gets as many, of all digits, to within one image.
Split split_uniformly(const mnist::Dataset& data, int clients, std::uint64_t seed);

/// The images of each digit go to the clients in shares drawn from a Dirichlet distribution: with a
/// small `alpha` most of a digit lies with few clients, with a large one the split is even. Every
/// client gets at least one image when there are as many.
Split split_by_label(const mnist::Dataset& data, int clients, double alpha, std::uint64_t seed);

}  // namespace federated

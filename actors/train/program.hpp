#pragma once

#include <string>

namespace troupe::train {

/// 16 hex digits over the file of the program that runs here, read once; empty if it cannot be
/// read. Nodes of one job run the same one: another compiler or release may round otherwise.
std::string program_hash();

}  // namespace troupe::train

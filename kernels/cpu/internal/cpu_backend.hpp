#pragma once

#include <memory>

namespace troupe::kernels {
class Backend;
}

namespace troupe::kernels::cpu {

std::shared_ptr<Backend> make_backend();

}  // namespace troupe::kernels::cpu

# `cmake --install` gives a package that find_package(Troupe) uses.
include(CMakePackageConfigHelpers)

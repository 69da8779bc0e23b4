# Third parties. Each is a Debian 12 package (scripts/deps lists them) and is linked in one place.
# The installed package reads this file too, so that users get the same imported targets.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(CapnProto REQUIRED)
find_package(ucx CONFIG REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
find_package(SQLite3 REQUIRED)

# troupe_find_library(TARGET LIBRARY HEADER PACKAGE): libraries whose own CMake config is absent
# (CAF, cpp-httplib) or broken (oneDNN's wants OpenCL's headers) on Debian 12.
function(troupe_find_library target library header package)
  if(TARGET ${target})
    return()
  endif()
  string(MAKE_C_IDENTIFIER "TROUPE_${library}_LIBRARY" library_var)
  string(MAKE_C_IDENTIFIER "TROUPE_${library}_INCLUDE" include_var)
  find_library(${library_var} ${library})
  find_path(${include_var} ${header})
  if(NOT ${library_var} OR NOT ${include_var})
    message(FATAL_ERROR "Troupe needs ${library} (${header}); install it: apt-get install ${package}")
  endif()
  add_library(${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(
    ${target} PROPERTIES IMPORTED_LOCATION "${${library_var}}" INTERFACE_INCLUDE_DIRECTORIES
                                                              "${${include_var}}")
endfunction()

troupe_find_library(Troupe::caf_core caf_core caf/all.hpp libcaf-dev)
troupe_find_library(Troupe::dnnl dnnl oneapi/dnnl/dnnl.hpp libdnnl-dev)
troupe_find_library(Troupe::httplib cpp-httplib httplib.h libcpp-httplib-dev)
# What Debian's library was compiled with: its classes have other sizes without these.
set_target_properties(
  Troupe::httplib
  PROPERTIES INTERFACE_COMPILE_DEFINITIONS
             "CPPHTTPLIB_OPENSSL_SUPPORT;CPPHTTPLIB_ZLIB_SUPPORT;CPPHTTPLIB_BROTLI_SUPPORT")

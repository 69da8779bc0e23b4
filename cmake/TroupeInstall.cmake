# `cmake --install` gives a package that find_package(Troupe) uses. The libraries install themselves
# (troupe_library); this adds the program, the targets' file and what finds the third parties.
include(CMakePackageConfigHelpers)

set(TROUPE_INSTALL_CMAKEDIR "${CMAKE_INSTALL_LIBDIR}/cmake/Troupe")

if(TARGET troupe)
  install(TARGETS troupe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(
  EXPORT TroupeTargets
  NAMESPACE troupe::
  DESTINATION ${TROUPE_INSTALL_CMAKEDIR})

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/TroupeConfig.cmake.in" "${PROJECT_BINARY_DIR}/TroupeConfig.cmake"
  INSTALL_DESTINATION ${TROUPE_INSTALL_CMAKEDIR} PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
# Before 1.0 a minor version may change anything.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TroupeConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(
  FILES "${PROJECT_BINARY_DIR}/TroupeConfig.cmake" "${PROJECT_BINARY_DIR}/TroupeConfigVersion.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/TroupeDependencies.cmake"
  DESTINATION ${TROUPE_INSTALL_CMAKEDIR})
if(TROUPE_WITH_CUDA)
  install(FILES "${CMAKE_CURRENT_LIST_DIR}/FindCUDNN.cmake" DESTINATION ${TROUPE_INSTALL_CMAKEDIR})
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${CMAKE_INSTALL_DOCDIR})

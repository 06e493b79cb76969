// NVML as device_state.cpp uses it, for a device that is not there: clocks fall from reading to reading.
#include <cstring>

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::strncpy(text, "580.95.05", size);
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  static int only = 0;
  *device = &only;
  return std::strcmp(bus_id, "0000:07:00.0") == 0 ? 0 : 6;  // NVML_ERROR_NOT_FOUND
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* megahertz) {
  static unsigned clock = 1410;
  *megahertz = type == 1 ? clock : 0;
  if (clock > 1200) clock -= 15;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 399500;
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 400000;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int sensor, unsigned* celsius) {
  *celsius = sensor == 0 ? 61 : 0;
  return 0;
}

}  // extern "C"

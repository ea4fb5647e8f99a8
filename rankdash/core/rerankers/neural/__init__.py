"""Rerankers that compute a neural network on this machine."""

import os
import sys

# ONNX Runtime and the Hugging Face hub tell their makers of their use unless told not to, before
# they are loaded. OpenVINO has no such setting; without this package it keeps silent.
for _variable in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY"):
    os.environ.setdefault(_variable, "1")
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]

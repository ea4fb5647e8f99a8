"""Rerankers that run a neural network on this machine."""

import os
import sys

# ONNX Runtime and the Hugging Face hub send telemetry unless these variables are set before they
# are imported. OpenVINO has no such variable; without this package it sends none.
for _variable in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY"):
    os.environ.setdefault(_variable, "1")
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]

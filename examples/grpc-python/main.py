"""An internal service that calls the gateway over gRPC."""

import os

import grpc
from uas.inference.v1 import conversation_pb2 as conversation
from uas.inference.v1 import generate_pb2 as generate
from uas.inference.v1 import inference_service_pb2 as inference
from uas.inference.v1.inference_service_pb2_grpc import InferenceServiceStub

address = os.environ.get("UAS_INTERNAL_ADDRESS", "127.0.0.1:8081")
metadata = [("authorization", f"Bearer {os.environ['UAS_API_KEY']}")]

with grpc.insecure_channel(address) as channel:
    client = InferenceServiceStub(channel)

    models = client.ListModels(inference.ListModelsRequest(), metadata=metadata).models
    print("models:", ", ".join(model.model_key for model in models))

    hello = conversation.Part(text=conversation.TextPart(text="Hello"))
    turn = conversation.Turn(role=conversation.ROLE_USER, parts=[hello])
    generation = generate.Generation(
        model="demo-chat", conversation=conversation.Conversation(turns=[turn])
    )
    request = inference.StreamGenerateRequest(generation=generation)
    for response in client.StreamGenerate(request, metadata=metadata):
        print(response.event.part_delta.text, end="")
    print()

    try:
        client.GetModel(inference.GetModelRequest(model_key="none"), metadata=metadata)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise
        print("there is no model called none")

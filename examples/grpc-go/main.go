// An internal service that calls the gateway over gRPC.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	errorv1 "uas-gateway/client/uas/error/v1"
	inferencev1 "uas-gateway/client/uas/inference/v1"
)

func main() {
	connection, err := grpc.Dial(os.Getenv("UAS_INTERNAL_ADDRESS"), grpc.WithInsecure())
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	client := inferencev1.NewInferenceServiceClient(connection)
	ctx := metadata.AppendToOutgoingContext(
		context.Background(), "authorization", "Bearer "+os.Getenv("UAS_API_KEY"))

	list, err := client.ListModels(ctx, &inferencev1.ListModelsRequest{})
	if err != nil {
		log.Fatal(err)
	}
	for _, model := range list.Models {
		fmt.Println("model:", model.ModelKey)
	}

	hello := &inferencev1.Part{Kind: &inferencev1.Part_Text{Text: &inferencev1.TextPart{Text: "Hello"}}}
	turn := &inferencev1.Turn{Role: inferencev1.Role_ROLE_USER, Parts: []*inferencev1.Part{hello}}
	stream, err := client.StreamGenerate(ctx, &inferencev1.StreamGenerateRequest{
		Generation: &inferencev1.Generation{
			Model:        "demo-chat",
			Conversation: &inferencev1.Conversation{Turns: []*inferencev1.Turn{turn}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(response.GetEvent().GetPartDelta().GetText())
	}
	fmt.Println()

	_, err = client.GetModel(ctx, &inferencev1.GetModelRequest{ModelKey: "none"})
	for _, detail := range status.Convert(err).Details() {
		if detail, ok := detail.(*errorv1.ErrorDetail); ok {
			fmt.Println("there is no model called none:", detail.Code)
		}
	}
}

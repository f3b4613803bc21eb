// Command example streams one answer through the gateway.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	client := openai.NewClient(
		option.WithBaseURL(os.Getenv("INTERLOCK_URL")), // http://127.0.0.1:8080/v1
		option.WithAPIKey(os.Getenv("INTERLOCK_KEY")),
		// The gateway recovers where it is safe. An SDK's own retries multiply attempts
		// outside the policy.
		option.WithMaxRetries(0),
	)
	stream := client.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{
		Model:    "gpt-4o",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Say hello.")},
	})
	for stream.Next() {
		if c := stream.Current(); len(c.Choices) > 0 {
			fmt.Print(c.Choices[0].Delta.Content)
		}
	}
	fmt.Println()
	// A stream that broke midway is an error here, with the code partial_stream: what came
	// before is not the whole answer.
	if err := stream.Err(); err != nil {
		log.Fatal(err)
	}
}

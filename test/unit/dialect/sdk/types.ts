/**
 * The types of the official SDKs whose names must be classified: requests, usage and betas of each
 * style.
 */
import type Anthropic from "@anthropic-ai/sdk";
import type {
  GenerateContentConfig,
  GenerateContentParameters,
  GenerateContentResponseUsageMetadata,
  Interactions,
  Tool,
} from "@google/genai";
import type OpenAI from "openai";

export type ChatRequest = OpenAI.Chat.Completions.ChatCompletionCreateParams;
export type ChatTool = OpenAI.Chat.Completions.ChatCompletionTool;
export type ChatUsage = OpenAI.CompletionUsage;

export type ResponsesRequest =
  | OpenAI.Responses.ResponseCreateParams
  | OpenAI.Responses.ResponseCompactParams
  | OpenAI.Responses.InputTokenCountParams
  | OpenAI.Beta.Responses.ResponseCreateParams;
export type ResponsesTool = OpenAI.Responses.Tool | OpenAI.Beta.Responses.BetaTool;
export type ResponsesUsage = OpenAI.Responses.ResponseUsage;
export type ResponsesBeta = NonNullable<
  OpenAI.Beta.Responses.ResponseCreateParams["betas"]
>[number];

export type MessagesRequest =
  | Anthropic.MessageCreateParams
  | Anthropic.MessageCountTokensParams
  | Anthropic.Beta.MessageCreateParams
  | Anthropic.Beta.Messages.MessageCountTokensParams;
export type MessagesTool = Anthropic.ToolUnion | Anthropic.Beta.BetaToolUnion;
export type MessagesUsage =
  | Anthropic.Usage
  | Anthropic.MessageDeltaUsage
  | Anthropic.Beta.BetaUsage
  | Anthropic.Beta.BetaMessageDeltaUsage;
export type MessagesBeta = Anthropic.Beta.AnthropicBeta;

export type GeminiRequest = Omit<GenerateContentParameters, "config"> &
  Omit<GenerateContentConfig, "abortSignal" | "httpOptions" | "automaticFunctionCalling">;
export type GeminiTool = Tool;
export type InteractionRequest =
  | Interactions.CreateModelInteractionParamsNonStreaming
  | Interactions.CreateAgentInteractionParamsNonStreaming;
export type GeminiUsage = GenerateContentResponseUsageMetadata;

export type EmbeddingsRequest = OpenAI.EmbeddingCreateParams;
export type ImagesRequest =
  | OpenAI.ImageGenerateParams
  | Omit<OpenAI.ImageEditParams, "image" | "mask" | "markup">
  | Omit<OpenAI.ImageCreateVariationParams, "image">;
export type SpeechRequest = OpenAI.Audio.SpeechCreateParams;
export type RecordingsRequest =
  | Omit<OpenAI.Audio.TranscriptionCreateParams, "file">
  | Omit<OpenAI.Audio.TranslationCreateParams, "file">;
export type ModerationsRequest = OpenAI.ModerationCreateParams;
export type CompletionsRequest = OpenAI.CompletionCreateParams;

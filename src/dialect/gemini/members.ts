/** The names of Gemini's generateContent, and what each can cost (R-TXT-13). */
import type { ToolRules } from "../features/billed-features.ts";
import { classed } from "../features/member-class.ts";

/** The members of a request, and of its `generationConfig`. */
export const geminiMembers = {
  ...classed(
    "free",
    `
    audioTimestamp audioTranscriptionConfig automaticContinuation candidateCount contents continuationToken
    enableEnhancedCivicAnswers frequencyPenalty imageConfig labels logprobs maxOutputTokens
    mediaResolution model presencePenalty responseJsonSchema responseLogprobs responseMimeType
    responseSchema safetySettings seed speechConfig stopSequences store systemInstruction
    temperature thinkingConfig toolConfig tools topK topP
    `,
  ),
  // Another model, or templates and buckets of the operator.
  ...classed(
    "refused",
    `
    generationOutputConfig modelArmorConfig modelConfig modelSelectionConfig routingConfig
    `,
  ),
  ...classed("stored object", "cachedContent"),
  ...classed("tiers.priority", "serviceTier"),
  ...classed("audio_output", "responseModalities"),
} as const;

/** The members of a request for an interaction. */
export const interactionMembers = {
  ...classed(
    "free",
    `
    agent agent_config background continuation_token generation_config input labels model
    response_format response_mime_type safety_settings store stream system_instruction tools
    webhook_config
    `,
  ),
  // A machine of the vendor, or one that it keeps for a customer.
  ...classed("refused", "environment"),
  ...classed("stored object", "cached_content previous_interaction_id"),
  ...classed("tiers.priority", "service_tier"),
  ...classed("audio_output", "response_modalities"),
} as const;

/** The members below them. */
export const geminiNested = {
  ...classed(
    "free",
    `
    accessToken adaptationPhrases allowedFunctionNames alpha anyOf apiAuth apiKey apiKeyConfig
    apiKeySecret apiKeySecretVersion apiKeyString apiSpec args aspectRatio audioTranscription
    authConfig authType autoMode behavior blockingConfidence boolValue callTool category code
    codeExecutionResult compressionQuality consentAudio credentialSecret customConfigs
    customVocabulary data dataStore dataStoreSpecs datastore default description diarization
    disableAttribution disabledSafetyPolicies displayName dynamicRetrievalConfig
    dynamicThreshold elasticSearchParams enableDataRetention enablePromptInjectionDetection
    enableWidget enableZeroDataRetention endOffset endTime endpoint engine enum environment
    example excludeDomains excludedPredefinedFunctions executableCode externalApi
    featureSelectionPreference fileData fileSearchStoreNames filter finished format fps
    functionCall functionCallingConfig functionResponse googleServiceAccountConfig
    groundingTypes headers httpBasicAuthConfig httpElementLocation hybridSearch id idToken
    imageOutputOptions imageSearch imageSize includeServerSideToolInvocations includeThoughts
    index inlineData items jsonPath language languageAuto languageCode languageCodes
    languageHints latLng latitude level llmRanker longitude manualMode maxItems maxLength
    maxProperties maxResults maximum mediaProcessing mediaResolution metadataFilter method
    mimeType minItems minLength minProperties minimum mode modelName modelRoutingPreference
    multiSpeakerVoiceConfig name nullValue nullable numHits numTokens numberValue oauthConfig
    oidcConfig outcome output outputCompressionQuality outputMimeType outputUriPrefix parameters
    parametersJsonSchema partMetadata partialArgs parts pattern personGeneration places
    prebuiltVoiceConfig prominentPeople promptTemplateName properties propertyOrdering
    ragCorpora ragCorpus ragFileIds ragResources ragRetrievalConfig rankService ranking
    replicatedVoiceConfig required response responseJsonSchema responseTemplateName
    retrievalConfig role routing scheduling searchTemplate searchTypes serviceAccount signature
    similarityTopK simpleSearchParams sourceText speaker speakerLabel speakerVoiceConfigs
    speechMetadata sseReadTimeout startOffset startTime storeContext streamFunctionCallArguments
    streamableHttpTransport stringValue style terminateOnClose text thinkingBudget thinkingLevel
    thought thoughtSignature threshold timeRangeFilter timeout title tool toolCall toolResponse
    toolType topK type url vectorDistanceThreshold vectorSimilarityThreshold vertexAiSearch
    vertexRagStore videoMetadata voice voiceConfig voiceConsentSignature voiceName
    voiceSampleAudio webSearch willContinue word wordTimestamp words
    `,
  ),
  ...classed("stored object", "fileUri"),
} as const;

/** The tools: members here, and no types. */
export const geminiTools = {
  free: ["function_?[dD]eclarations"],
  billed: [
    [/^(?:google|enterprise|web)_?search/i, "tools.web_search"],
    [/^code_?execution$/i, "tools.code_execution"],
    [/^url_?context$/i, "tools.web_fetch"],
  ],
  refused: [
    "computerUse",
    "enterpriseWebSearch",
    "exaAiSearch",
    "fileSearch",
    "googleMaps",
    "mcpServers",
    "parallelAiSearch",
    "retrieval",
  ],
} as const satisfies ToolRules;

/** Figures of a usage. Figures of audio and images state their modality. */
export const geminiUsage = {
  ...classed(
    "free",
    `
    modality totalTokenCount trafficType
    `,
  ),
  ...classed(
    "input",
    `
    initialPromptTokenCount promptTokenCount promptTokensDetails tokenCount
    toolUsePromptTokenCount toolUsePromptTokensDetails
    `,
  ),
  ...classed("cached_input", "cacheTokensDetails cachedContentTokenCount"),
  ...classed("output", "candidatesTokenCount candidatesTokensDetails thoughtsTokenCount"),
} as const;

/**
 * Only DashScope's native form is classed by hand (R-TXT-13): no SDK for TypeScript has types of
 * it. Sources: https://help.aliyun.com/zh/model-studio/qwen-api-reference for texts, and for images
 * and videos `dashscope/aigc` in https://github.com/dashscope/dashscope-sdk-python.
 */
import { classed } from "../../dialect/features/member-class.ts";

/** The members of `input` of a text. */
export const textInput = {
  ...classed("free", "history messages negative_prompt prompt"),
  // It chooses another model.
  ...classed("refused", "customized_model_id"),
  // They make speech of `text`.
  ...classed("audio_output", "language_type text voice"),
} as const;

/** The members of `parameters` of a text. */
export const textParameters = {
  ...classed(
    "free",
    `
    enable_thinking frequency_penalty incremental_output logprobs max_length max_tokens n
    parallel_tool_calls presence_penalty preserve_thinking reasoning_effort repetition_penalty
    response_format result_format search_options seed stop stream temperature thinking_budget
    tool_choice top_k top_logprobs top_p translation_options vl_enable_image_hw_output
    vl_high_resolution_images
    `,
  ),
  // Only functions pass as tools. A skill makes a file of slides.
  ...classed("refused", "skill tools"),
  ...classed("audio_output", "audio modalities"),
  ...classed("tools.web_search", "enable_search"),
  ...classed("tools.code_execution", "enable_code_interpreter"),
} as const;

/** The members of `input` of images and videos. */
export const mediaInput = {
  ...classed(
    "free",
    `
    audio_url base_image_url extend_prompt first_frame_url function head_frame images img_url
    last_frame_url mask_image_url media messages negative_prompt prompt ref_img reference_url
    reference_urls reference_video_description reference_video_urls sketch_image_url tail_frame
    template
    `,
  ),
  ...classed("refused", "customized_model_id"),
} as const;

/** The members of `parameters` of images and videos. A price covers every form that they select. */
export const mediaParameters = {
  ...classed(
    "free",
    `
    audio audio_setting duration enable_thinking n negative_prompt prompt_extend ratio
    realisticness resolution seed shot_type similarity size sketch_weight stream watermark
    `,
  ),
  // With them the models of Wan may make more images than `n`. The SDK does not name them.
  ...classed("refused", "enable_interleave enable_sequential"),
} as const;

accelerate launch --num_processes -"" train.py --model_name_or_path meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 1 --max_length 2048
